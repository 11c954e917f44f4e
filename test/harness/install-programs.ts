import { readArguments } from '../../scripts/arguments.ts';
import { installPrograms } from './programs.ts';

readArguments({
  name: 'node test/harness/install-programs.ts',
  about:
    "Installs what the tests run beside shopward from Debian's packages, where it is missing and root asks; `npm test` begins with it.",
});
installPrograms();
