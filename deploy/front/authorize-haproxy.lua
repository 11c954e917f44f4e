-- Asks shopward about a request. Arguments: shopward's address, and the fields that it sets, separated by commas.
local hop = { ["content-length"] = true, ["transfer-encoding"] = true, ["expect"] = true }

local function ask(txn, address, fields)
    local headers = {}
    for name, values in pairs(txn.http:req_get_headers()) do
        if not hop[name] then
            headers[name] = {}
            for _, value in pairs(values) do table.insert(headers[name], value) end
        end
    end
    headers["x-forwarded-method"] = { txn.f:method() }
    headers["x-forwarded-uri"] = { txn.f:pathq() }
    local answer = core.httpclient():get{ url = "http://" .. address .. "/authorize", headers = headers, timeout = 20000 }

    local status = answer and answer.status or 0
    if status ~= 200 then
        local reply = txn:reply{ status = status >= 400 and status or 503 }
        for _, name in ipairs({ "content-type", "www-authenticate", "dpop-nonce", "retry-after", "cache-control", "x-request-id" }) do
            for _, value in pairs(answer and answer.headers and answer.headers[name] or {}) do reply:add_header(name, value) end
        end
        reply:set_body(answer and answer.body or "")
        txn:done(reply)
        return
    end
    -- Values come from shopward's answer, never from the client. An empty value removes the field.
    for name in fields:gmatch("[^,]+") do
        local value = (answer.headers[name] or {})[0]
        if value == nil or value == "" then
            txn.http:req_del_header(name)
        else
            txn.http:req_set_header(name, value)
        end
    end
    txn:set_var("txn.shopward", "allowed")
end

core.register_action("ask_shopward", { "http-req" }, ask, 2)
