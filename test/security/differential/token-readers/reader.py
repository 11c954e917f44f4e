# Reads requests from stdin, one line of JSON each; prints the refresh tokens that Python's libraries find in each.
import base64, cgi, email, gzip, io, json, re, sys, warnings, zlib
from urllib.parse import parse_qs

warnings.simplefilter('ignore')
NAMES = {'refreshtoken'}
fold = lambda name: re.sub(r'[_\-]', '', name).lower()


def walk(value, out):
    if isinstance(value, dict):
        exchanges = value.get('grant_type', 'refresh_token') == 'refresh_token'
        for name, inner in value.items():
            if exchanges and isinstance(name, str) and fold(name) in NAMES and isinstance(inner, (str, int)):
                out.append(str(inner))
            walk(inner, out)
    elif isinstance(value, list):
        for inner in value:
            walk(inner, out)


def from_pairs(pairs, out):
    grants = [v for name, values in pairs.items() if name == 'grant_type' for v in values]
    if grants and 'refresh_token' not in (grants[0], grants[-1]):
        return
    for name, values in pairs.items():
        if fold(name) in NAMES:
            out.extend(values)


def bodies(request):
    body = base64.b64decode(request['body'])
    yield body
    for undo in (gzip.decompress, zlib.decompress, lambda b: zlib.decompress(b, -15)):
        try:
            yield undo(body)
        except Exception:
            pass


def read(request):
    out = []
    type_, query = request['contentType'], request['query']
    params = email.message_from_string('Content-Type: ' + re.sub(r'[\r\n]', ' ', type_) + '\n\n')
    charset = params.get_param('charset', 'utf-8')
    charset = charset if isinstance(charset, str) else 'utf-8'
    attempt(lambda: from_pairs(parse_qs(query), out))
    for body in bodies(request):
        attempt(lambda: walk(json.loads(body), out))
        for encoding in {charset, 'utf-8', 'latin-1'}:
            try:
                text = body.decode(encoding, 'replace')
            except Exception:
                continue
            attempt(lambda: walk(json.loads(text), out))
            # The second form is split as before Python 3.9.2.
            for form in (text, text.replace(';', '&')):
                attempt(lambda: from_pairs(parse_qs(form + '&' + query), out))
                attempt(lambda: from_pairs(parse_qs(form), out))
        attempt(lambda: from_field_storage(body, type_, query, out))
    return out


def from_field_storage(body, type_, query, out):
    env = {'REQUEST_METHOD': 'POST', 'QUERY_STRING': query, 'CONTENT_TYPE': type_, 'CONTENT_LENGTH': str(len(body))}
    form = cgi.FieldStorage(fp=io.BytesIO(body), environ=env)
    from_pairs({name: [v for v in form.getlist(name) if isinstance(v, str)] for name in form.keys()}, out)


def attempt(act):
    try:
        act()
    except Exception:
        pass


sys.setrecursionlimit(3000)
for line in sys.stdin:
    print(json.dumps(read(json.loads(line))), flush=True)
