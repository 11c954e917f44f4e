# Prints its port, and answers with all variables that a WSGI program gets from the request's fields.
import json
from wsgiref.simple_server import WSGIRequestHandler, make_server


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


# WSGI leaves chunks to its program. A program that reads trailers folds their names like those of other fields.
def read_trailers(body):
    while size := int(body.readline(), 16):
        body.read(size + 2)
    lines = iter(lambda: body.readline().decode("latin-1").strip(), "")
    named = (line.split(":", 1) for line in lines)
    return {"HTTP_" + name.upper().replace("-", "_"): value for name, value in named}


def program(environ, start_response):
    seen = {name: value for name, value in environ.items() if name.startswith("HTTP_")}
    if "chunked" in environ.get("HTTP_TRANSFER_ENCODING", ""):
        seen.update(read_trailers(environ["wsgi.input"]))
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(seen).encode()]


server = make_server("127.0.0.1", 0, program, handler_class=Quiet)
print(server.server_port, flush=True)
server.serve_forever()
