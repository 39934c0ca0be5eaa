-- A worker per thread: fetches a batch, acknowledges each job of it, fetches the next. The queue, which was filled before,
-- and the jobs of a batch are the arguments.
require("figures")

local headers = { ["Content-Type"] = "application/openjobspec+json" }
local fetch
local waiting = {}
acked = 0

function init(arguments)
    fetch = '{"queues":["' .. arguments[1] .. '"],"count":' .. arguments[2] .. '}'
end

function request()
    local id = table.remove(waiting)
    if id then
        return wrk.format("POST", "/ojs/v1/workers/ack", headers, '{"job_id":"' .. id .. '","result":null}')
    end
    return wrk.format("POST", "/ojs/v1/workers/fetch", headers, fetch)
end

function response(status, _, body)
    if status == 200 and body:sub(1, 7) == '{"jobs"' then
        for id in body:gmatch('"specversion":"1.0","id":"([0-9a-f-]+)"') do
            waiting[#waiting + 1] = id
        end
    elseif status == 200 then
        acked = acked + 1
    end
end

threads = {}
function setup(thread) threads[#threads + 1] = thread end
