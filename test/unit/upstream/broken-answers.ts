import { answer } from '../../harness/recording-upstream.ts';

export const ok = 'HTTP/1.1 200 OK\r\n';
export const evil = answer('evil', 'Set-Cookie: session=evil\r\n');

const chunked = 'Transfer-Encoding: chunked';
const evilChunks = '\r\n\r\n4\r\nevil\r\n0\r\n\r\n';

const codings = (
  'chunked\xa0|chunked |chunked\t|\tCHUNKED \t|\xa0chunked|chunked\v|chunked\f|chunked\x85|chunked;a|' +
  'chunked,|,chunked|chunked, chunked|chunked, identity|identity|identity, chunked|gzip|gzip, chunked|' +
  'chunked, gzip|x|"chunked"|chunked\u0000||chun ked|xchunked|chunkedx|ch\xfanked'
).split('|');

/** Malformed responses, even if a lenient parser accepts them. */
export const brokenAnswers: readonly (readonly [string, string])[] = [
  ...codings.map(
    (coding) =>
      [`coding ${JSON.stringify(coding)}`, `${ok}Transfer-Encoding: ${coding}${evilChunks}`] as const,
  ),
  ['two lines of one coding', `${ok}${chunked}\r\n${chunked}${evilChunks}`],
  ['an empty line of a second coding', `${ok}Transfer-Encoding:\r\n${chunked}${evilChunks}`],
  ['a length after a coding', `${ok}${chunked}\r\nContent-Length: 14${evilChunks}`],
  ['a length before a coding', `${ok}Content-Length: 14\r\n${chunked}${evilChunks}`],
  ['two lengths', `${ok}Content-Length: 4\r\nContent-Length: 5\r\n\r\nevil!`],
  ['a list of lengths', `${ok}Content-Length: 4, 4\r\n\r\nevil`],
  ['a length with a sign', `${ok}Content-Length: +4\r\n\r\nevil`],
  ['a length in hexadecimal', `${ok}Content-Length: 0x4\r\n\r\nevil`],
  ['a length with a no-break space', `${ok}Content-Length: 4\xa0\r\n\r\nevil`],
  ['a length beyond 64 bits', `${ok}Content-Length: 18446744073709551620\r\n\r\nevil`],
  ['a bare CR after the status line', 'HTTP/1.1 200 OK\r\rX-Foo: 4\r\n\r\nevil'],
  ['a bare CR after the status line, and a length', 'HTTP/1.1 200 OK\r\rContent-Length: 4\r\n\r\nevil'],
  ['nothing but bare CRs', 'HTTP/1.1 200 OK\r\r\r\r\nevil'],
  ['a bare CR for the line end of a head without fields', 'HTTP/1.1 200 OK\r\r\r\nevil'],
  ['a bare CR in a value', `${ok}X-A: b\rContent-Length: 4\r\n\r\nevil`],
  ['a bare CR after a value', `${ok}Content-Length: 4\r\r\n\r\nevil`],
  ['bare LFs', 'HTTP/1.1 200 OK\nContent-Length: 4\n\nevil'],
  ['a bare LF after the status line', 'HTTP/1.1 200 OK\nContent-Length: 4\r\n\r\nevil'],
  ['a bare LF at the end of the head', `${ok}Content-Length: 4\r\n\nevil`],
  ['a folded line', `${ok}X-A: b\r\n Content-Length: 9\r\nContent-Length: 4\r\n\r\nevil`],
  ['a line of spaces', `${ok}Content-Length: 4\r\n  \r\n\r\nevil`],
  ['a space before the colon', `${ok}Content-Length : 4\r\n\r\nevil`],
  ['a line without a colon', `${ok}Content-Length\r\n\r\nevil`],
  ['an empty name', `${ok}: 4\r\n\r\nevil`],
  ['a NUL in a value', `${ok}X-A: \0\r\nContent-Length: 4\r\n\r\nevil`],
  ['a DEL in a value', `${ok}X-A: \x7f\r\nContent-Length: 4\r\n\r\nevil`],
  ['an empty line in front', `\r\n${ok}Content-Length: 4\r\n\r\nevil`],
  ['CRs in front', `\r\r${ok}Content-Length: 4\r\n\r\nevil`],
  ['a space in front', ` ${ok}Content-Length: 4\r\n\r\nevil`],
  ['HTTP/1.2', 'HTTP/1.2 200 OK\r\nContent-Length: 4\r\n\r\nevil'],
  ['HTTP/2', 'HTTP/2 200\r\nContent-Length: 4\r\n\r\nevil'],
  ['a status of two digits', 'HTTP/1.1 20 OK\r\nContent-Length: 4\r\n\r\nevil'],
  ['a status of four digits', 'HTTP/1.1 2000 OK\r\nContent-Length: 4\r\n\r\nevil'],
  ['a NUL in the reason', 'HTTP/1.1 200 O\0K\r\nContent-Length: 4\r\n\r\nevil'],
  [
    'an unasked 101',
    `HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n${evil}`,
  ],
  ['a 101 without an Upgrade field', `HTTP/1.1 101 Switching Protocols\r\n\r\n${evil}`],
  ['a body after an interim answer', `HTTP/1.1 103 Early\r\nContent-Length: 4\r\n\r\nevil${evil}`],
  ['an interim answer in chunks', `HTTP/1.1 103 Early\r\n${chunked}${evilChunks}${evil}`],
  ['a coding of an interim answer', `HTTP/1.1 102 Processing\r\nTransfer-Encoding: gzip\r\n\r\n${evil}`],
  ['a bare CR in an interim answer', `HTTP/1.1 103 Early\r\rLink: </a>\r\n\r\n${evil}`],
  ['interim answers without end', 'HTTP/1.1 103 Early\r\n\r\n'.repeat(5_000)],
  ['one interim answer more than the limit', 'HTTP/1.1 103 Early\r\n\r\n'.repeat(513) + evil],
  ['a chunk size with a sign', `${ok}${chunked}\r\n\r\n+4\r\nevil\r\n0\r\n\r\n`],
  ['a chunk size with 0x', `${ok}${chunked}\r\n\r\n0x4\r\nevil\r\n0\r\n\r\n`],
  ['a chunk size line with a bare LF', `${ok}${chunked}\r\n\r\n4\nevil\r\n0\r\n\r\n`],
  ['a chunk longer than its size', `${ok}${chunked}\r\n\r\n3\r\nevil\r\n0\r\n\r\n`],
  ['an enormous chunk size', `${ok}${chunked}\r\n\r\nfffffffffffffffff\r\nevil\r\n0\r\n\r\n`],
  ['a length that is no number', `${ok}Content-Length: 1a\r\n\r\na`],
  ['a negative length', `${ok}Content-Length: -1\r\n\r\na`],
  ['a chunk size that is no number', `${ok}${chunked}\r\n\r\nx\r\n`],
  ['a LF in front', `\n${ok}Content-Length: 0\r\n\r\n`],
  ['lower case', 'http/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'],
  ['a tab after the version', 'HTTP/1.1\t200 OK\r\nContent-Length: 0\r\n\r\n'],
  ['HTTP/3.0', 'HTTP/3.0 200 OK\r\n\r\n'],
  ['another protocol', 'SSH-2.0-OpenSSH_9\r\n'],
  ['no space behind the status', 'HTTP/1.1 200OK\r\n\r\n'],
  ['DEL in the reason', 'HTTP/1.1 200 O\x7fK\r\n\r\n'],
  ['status 99', 'HTTP/1.1 099 Low\r\n\r\n'],
  ['status 600', 'HTTP/1.1 600 High\r\n\r\n'],
];
