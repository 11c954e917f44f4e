/**
 * Whether an RSA modulus looks like those of the generator of CVE-2017-15361: its primes are powers of 65537 modulo a
 * primorial, so that the modulus, too, is one modulo every small prime. A good modulus passes for one about once in
 * 2^27 keys.
 */
export function hasRocaFingerprint(modulus: bigint): boolean {
  return smallPrimes.every((prime) => powersOf65537(prime).has(Number(modulus % BigInt(prime))));
}

const smallPrimes = [
  ...[
    3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103,
    107,
  ],
  ...[109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167],
];

function powersOf65537(prime: number): Set<number> {
  const powers = new Set<number>();
  for (let power = 1; !powers.has(power); power = (power * 65537) % prime) powers.add(power);
  return powers;
}
