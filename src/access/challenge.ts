/** What a `WWW-Authenticate` value says besides the scheme (RFC 6750 section 3). */
export interface Challenge {
  readonly realm: string;
  /** Left out when no credentials came at all. */
  readonly error?: 'invalid_token' | 'insufficient_scope';
  /** The scopes that the request needs. */
  readonly scopes?: readonly string[];
  /** Where the metadata of the protected resource are (RFC 9728 section 5.1). */
  readonly resourceMetadataUrl?: string | undefined;
}

/** Builds a `WWW-Authenticate` value. It never says more about a failure than `error`. */
export function buildChallenge({ realm, error, scopes, resourceMetadataUrl }: Challenge): string {
  const parameters = [`realm=${quote(realm)}`];
  if (error !== undefined) parameters.push(`error=${quote(error)}`);
  if (scopes !== undefined && scopes.length > 0) parameters.push(`scope=${quote(scopes.join(' '))}`);
  if (resourceMetadataUrl !== undefined) parameters.push(`resource_metadata=${quote(resourceMetadataUrl)}`);
  return `Bearer ${parameters.join(', ')}`;
}

/** A quoted-string (RFC 9110 section 5.6.4); what cannot stand in one becomes `?`. */
function quote(text: string): string {
  return `"${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}
