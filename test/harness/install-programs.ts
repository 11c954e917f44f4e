/** `npm test` begins with this. */
import { installPrograms } from './programs.ts';

installPrograms();
