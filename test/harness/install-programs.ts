import { readArguments } from '../../scripts/arguments.ts';
import { installPrograms } from './programs.ts';

readArguments({
  name: 'node test/harness/install-programs.ts',
  about:
    "Installs the programs that the tests need and this machine lacks, from Debian's packages, if run as root. `npm test` runs it first.",
});
installPrograms();
