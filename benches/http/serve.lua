-- A worker per thread: fetches a batch, acknowledges each job of it, fetches the next. The queue was filled before.
local headers = { ["Content-Type"] = "application/openjobspec+json" }
local fetch = '{"queues":["bench"],"count":100}'
local waiting = {}
acked, fetched = 0, 0

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
            fetched = fetched + 1
        end
    elseif status == 200 then
        acked = acked + 1
    end
end

local threads = {}
function setup(thread) threads[#threads + 1] = thread end

function done(summary)
    local jobs = 0
    for _, thread in ipairs(threads) do jobs = jobs + thread:get("acked") end
    io.write(string.format("Jobs acknowledged/sec: %10.2f\n", jobs / summary.duration * 1e6))
end
