/** A self-signed certificate for localhost and 127.0.0.1, valid for a hundred years. For tests only. */
export const testCertificate = `-----BEGIN CERTIFICATE-----
MIIBmjCCAUGgAwIBAgIUIaZZj98/D5gbqhb2N/dZkFg9bmkwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTA5MjIzOVoYDzIxMjYxMDI4
MDkyMjM5WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQ3W4swcsRMQOUFNOSehbVRG4f20lBCXshexl2qo3BpepksiAhK+xbA
a1LObPgdqiIxU/e9SUl1gaTzejlD/YMVo28wbTAdBgNVHQ4EFgQUPZyNSFVzY44s
9xF/QJkOg5hJp9owHwYDVR0jBBgwFoAUPZyNSFVzY44s9xF/QJkOg5hJp9owDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDRwAwRAIgbNzDmqXp+TvupmEsNZ2YXTPax4admmqCxZgrafA9JX0CIDMf
UOR0LIZGaHEW7VlSD2Hm/2vFSlb3fj35Zz5Mt2+l
-----END CERTIFICATE-----
`;

export const testKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgb9ZG8S68LuFn0VZx
1jjpbgyTfeAVhql9iNR+s/MUilqhRANCAAQ3W4swcsRMQOUFNOSehbVRG4f20lBC
Xshexl2qo3BpepksiAhK+xbAa1LObPgdqiIxU/e9SUl1gaTzejlD/YMV
-----END PRIVATE KEY-----
`;

/** Another certificate, for rotations. */
export const nextCertificate = `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUX9JNTh14BSdYasxPlGqevXaKJIUwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTE1NDMyMVoYDzIxMjYxMDI4
MTU0MzIxWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAARGgawf7NXPzd48YHT5PkV8dzOGXEgK5PMzUJvUC1msvpfIoqtid5kG
iFKhL9nFJaP23inqbg3YiIHcPyGOcl2uo28wbTAdBgNVHQ4EFgQU+pB82nE2nULg
5uBT9UnxRhd+wWkwHwYDVR0jBBgwFoAU+pB82nE2nULg5uBT9UnxRhd+wWkwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIhAO/Dx01FiLGp+lkRmiKJiNcEBDtxuYRp1I9Omh4sBu/tAiAc
rlT6c/F72gTs598kk1Vlh+aKoo/NKpM4cEdz1/CdCg==
-----END CERTIFICATE-----
`;

export const nextKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgWz5+XfDvHdHkZ3im
oqEnLAp7BMCikOVcW0WXE09WjtChRANCAARGgawf7NXPzd48YHT5PkV8dzOGXEgK
5PMzUJvUC1msvpfIoqtid5kGiFKhL9nFJaP23inqbg3YiIHcPyGOcl2u
-----END PRIVATE KEY-----
`;

/** A certificate that expired in 2021. */
export const expiredCertificate = `-----BEGIN CERTIFICATE-----
MIIBEDCBtgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwHhcN
MjAwMTAxMDAwMDAwWhcNMjEwMTAxMDAwMDAwWjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQ95vPQzmqNnvU6n90V3ZULPm8s
QcDVswX+kuo9kVDHoNYpHjWQjcEGH035BU34Yl8I4XRvZf//0ZKPkdxRoaAgMAoG
CCqGSM49BAMCA0kAMEYCIQDY7qVcgQ/92834AtCprTetQjYfACcbOBLQXyzcotoj
vQIhAKHl5XzDWOQiKSajAMscGxtvPSq1gnMecW5rV+L9D0Dm
-----END CERTIFICATE-----
`;

export const expiredKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgpTFnioyHRxJxIcoi
/G9Cz+WfzU+A5rCKlbgmT1TDy7ChRANCAAQ95vPQzmqNnvU6n90V3ZULPm8sQcDV
swX+kuo9kVDHoNYpHjWQjcEGH035BU34Yl8I4XRvZf//0ZKPkdxRoaAg
-----END PRIVATE KEY-----
`;

export const testPair = { cert: testCertificate, key: testKey };
export const nextPair = { cert: nextCertificate, key: nextKey };
export const expiredPair = { cert: expiredCertificate, key: expiredKey };
