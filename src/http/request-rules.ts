import { compileEncodedSlash, type EncodedSlashRules } from './encoded-slash.ts';
import { buildFieldKinds, type FieldKinds } from './field-kinds.ts';
import { compileTrust, type TrustTest } from './peer.ts';
import { generateRequestId } from './request-id.ts';

export interface RequestRulesOptions {
  /** `host[:port]` of the upstream: its Host field, unless `forwardHost`. */
  readonly upstreamHost: string;
  /** The client's Host is forwarded. Default false. */
  readonly forwardHost?: boolean;
  /** CIDRs and addresses whose X-Forwarded-For, X-Forwarded-Proto and X-Request-Id are believed. Default none. */
  readonly trustedProxies?: readonly string[];
  /** Further fields that pass from a trusted peer and are dropped from anybody else. Default none. */
  readonly trustedFields?: readonly string[];
  /** Path templates in whose parameters `%2F` may stand. Default none. */
  readonly encodedSlash?: readonly string[];
  /** Bytes of an announced request body; more is 413. */
  readonly requestBodyBytes: number;
  /** Pseudonym of this proxy in a Via field (RFC 9110 section 7.6.3). Default: no Via field. */
  readonly viaName?: string | undefined;
  /** WebSocket upgrades are recognised. Default false. */
  readonly webSocket?: boolean;
  /** Default: a random UUID. */
  readonly generateRequestId?: () => string;
}

/** What `canonicaliseRequest` goes by, built once from the options. */
export interface RequestRules {
  readonly upstreamHost: string;
  readonly forwardHost: boolean;
  readonly isTrusted: TrustTest;
  readonly fieldKinds: FieldKinds;
  readonly encodedSlash: EncodedSlashRules;
  readonly requestBodyBytes: number;
  readonly viaName: string | undefined;
  readonly webSocket: boolean;
  readonly generateRequestId: () => string;
}

/** Throws a TypeError that names the option's bad entry. */
export function buildRequestRules(options: RequestRulesOptions): RequestRules {
  return {
    upstreamHost: options.upstreamHost,
    forwardHost: options.forwardHost ?? false,
    isTrusted: compileTrust(options.trustedProxies ?? []),
    fieldKinds: buildFieldKinds(options.trustedFields ?? []),
    encodedSlash: compileEncodedSlash(options.encodedSlash ?? []),
    requestBodyBytes: options.requestBodyBytes,
    viaName: options.viaName,
    webSocket: options.webSocket ?? false,
    generateRequestId: options.generateRequestId ?? generateRequestId,
  };
}
