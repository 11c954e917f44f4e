import { beginWithFirstKeys } from '../access/signing.ts';

beginWithFirstKeys();
