import { randomBytes, scryptSync, timingSafeEqual } from 'node:crypto';

/** A low cost on purpose: seeding a shop must not take seconds, and these passwords are printed in its tour. */
const cost = { N: 1024 };

export function hashPassword(password: string): string {
  const salt = randomBytes(16);
  return `${salt.toString('hex')}:${scryptSync(password, salt, 32, cost).toString('hex')}`;
}

export function isPasswordOf(password: string, passwordHash: string): boolean {
  const [salt, hash] = passwordHash.split(':');
  if (salt === undefined || hash === undefined) return false;
  const given = scryptSync(password, Buffer.from(salt, 'hex'), 32, cost);
  return timingSafeEqual(given, Buffer.from(hash, 'hex'));
}
