/** JSON with PHP's escapes: `\/` and `\u0026`, `\u0027`, `\u0022`, `\u003C`, `\u003E` inside strings. */
export function phpJson(value: unknown): string {
  const escapes: Record<string, string> = {
    '/': '\\/',
    '&': '\\u0026',
    "'": '\\u0027',
    '<': '\\u003C',
    '>': '\\u003E',
    '\\"': '\\u0022',
  };
  return JSON.stringify(value).replace(/\\["\\]|[/&'<>]/g, (found) => escapes[found] ?? found);
}
