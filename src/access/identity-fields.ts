import type { CanonicalRequest } from '../http/canonical-request.ts';
import { editFields, fieldValue } from '../http/field-list.ts';
import type { TokenIdentity } from './token-claims.ts';

export interface IdentityForwarding {
  /** Names of the fields. A value without a name is not sent. */
  readonly forward: {
    readonly subject?: string | undefined;
    readonly scopes?: string | undefined;
    readonly issuer?: string | undefined;
  };
  readonly forwardAuthorization: boolean;
}

/** The names that `auth.forward` reserves for shopward: fields of clients with these names are dropped. */
export function identityFieldNames(forward: IdentityForwarding['forward'] = {}): readonly string[] {
  return [forward.subject, forward.scopes, forward.issuer].filter((name) => name !== undefined);
}

/** Octets of one field. Many servers refuse a head of more than 8 KiB, so a longer field could fail all requests of a user. */
export const maxIdentityOctets = 2048;

/**
 * Compiles `auth.forward` and `auth.forwardAuthorization` to a function that adds the fields of a verified token to the
 * request. By default a canonical request is returned unchanged. `too-long`: the identity does not fit into a field.
 */
export function createWithIdentity({ forward, forwardAuthorization }: IdentityForwarding) {
  const isNamed = identityFieldNames(forward).length > 0;
  return (request: CanonicalRequest, identity: TokenIdentity, authorization: string) => {
    const isCanonical = forwardAuthorization && fieldValue(request.fields, 'authorization') === authorization;
    if (isCanonical && !isNamed) return request;
    const named = identityFields(forward, identity);
    if (areTooLong(named)) return 'too-long';
    const edits = isCanonical
      ? named
      : { Authorization: forwardAuthorization ? authorization : null, ...named };
    // Without its token a DPoP proof is not forwarded either.
    if (!forwardAuthorization && authorization.startsWith('DPoP ')) Object.assign(edits, { DPoP: null });
    return { ...request, fields: editFields(request.fields, edits) };
  };
}

/** The fields that `auth.forward` names, with their values for this identity. Without scopes or issuer there is no such field. */
export function identityFields(
  { subject, scopes, issuer }: IdentityForwarding['forward'],
  identity: TokenIdentity,
): Readonly<Record<string, string>> {
  const fields: Record<string, string> = {};
  if (subject !== undefined) fields[subject] = encodeIdentity(identity.claimedSubject);
  if (scopes !== undefined && identity.scopes.length > 0)
    fields[scopes] = identity.scopes.map(encodeIdentity).join(' ');
  if (issuer !== undefined && identity.issuer !== undefined) fields[issuer] = encodeIdentity(identity.issuer);
  return fields;
}

export function areTooLong(fields: Readonly<Record<string, string>>): boolean {
  return Object.values(fields).some(({ length }) => length > maxIdentityOctets);
}

const encoded = /[^\x21-\x7e]|[%,;"\\]/gu;

/**
 * A claim as a field value. Visible US-ASCII is kept, except `%`, `,`, `;`, `"` and `\`; all other characters
 * become `%XX` for each octet of their UTF-8 (RFC 3986 section 2.1). So a value has no line break and is never read as two
 * values, and `decodeURIComponent` restores the claim. A lone surrogate, which has no UTF-8, becomes U+FFFD.
 * Exported for its tests.
 */
export function encodeIdentity(claim: string): string {
  return claim.replace(encoded, (character) => {
    let text = '';
    for (const octet of Buffer.from(character))
      text += `%${octet.toString(16).toUpperCase().padStart(2, '0')}`;
    return text;
  });
}
