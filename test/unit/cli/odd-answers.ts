const ok = 'HTTP/1.1 200 OK\r\nConnection: close\r\n';

/** Part of the message about an answer -> its octets. `none`: the answer is accepted. */
export const oddAnswers: readonly (readonly [cause: string, octets: string])[] = [
  ['none', `${ok}Content-Length: 2\r\n\r\n{}`],
  ['none', `${ok}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
  ['ends with LF alone', `${ok}X-Old: a\nContent-Length: 2\r\n\r\n{}`],
  ['ends with LF alone', 'HTTP/1.1 200 OK\nConnection: close\nContent-Length: 2\n\n{}'],
  ['Duplicate Content-Length', `${ok}Content-Length: 2\r\nX: y\r\nContent-Length: 2\r\n\r\n{}`],
  ['a transfer coding that', `${ok}Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}`],
  ['in chunk size', `${ok}Transfer-Encoding: chunked\r\n\r\n2 \r\n{}\r\n0\r\n\r\n`],
  [
    "Content-Length can't be present",
    `${ok}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n`,
  ],
];
