-- Asks shopward about a request. Needs LuaSocket (Debian: lua-socket).
local http = require "socket.http"
local address = "127.0.0.1:8082"
-- Fields that shopward sets.
local fields = { "Authorization", "X-User" }
local dropped = { ["content-length"] = true, ["transfer-encoding"] = true, ["expect"] = true }

function ask(r)
    local headers = {}
    for name, value in pairs(r:headers_in_table()) do
        if not dropped[name:lower()] then headers[name:lower()] = value end
    end
    -- Otherwise LuaSocket sends the host of the address.
    headers["host"] = r.headers_in["Host"] or ""
    headers["connection"] = "close"
    headers["x-original-method"] = r.method
    headers["x-original-uri"] = r.unparsed_uri
    headers["x-forwarded-proto"] = r.is_https and "https" or "http"
    headers["x-forwarded-for"] = r.useragent_ip
    local _, status, answer = http.request { url = "http://" .. address .. "/authorize", headers = headers, redirect = false }

    if status ~= 200 then
        local challenge = type(answer) == "table" and answer["www-authenticate"]
        if challenge then r.err_headers_out["WWW-Authenticate"] = challenge end
        if type(answer) == "table" then r.err_headers_out["DPoP-Nonce"] = answer["dpop-nonce"] end
        return type(status) == "number" and status >= 400 and status or 503
    end
    -- Values come from shopward's answer, never from the client. An empty value removes the field.
    for _, name in ipairs(fields) do
        local value = answer[name:lower()]
        r.headers_in[name] = value ~= "" and value or nil
    end
    return apache2.OK
end
