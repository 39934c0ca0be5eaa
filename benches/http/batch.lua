-- A hundred jobs per request.
require("figures")

wrk.method = "POST"
wrk.path = "/ojs/v1/jobs/batch"
wrk.headers["Content-Type"] = "application/openjobspec+json"
local job = '{"type":"bench.plain","args":["' .. string.rep("x", 200) .. '"],"options":{"queue":"bench"}}'
local jobs = {}
for i = 1, 100 do jobs[i] = job end
wrk.body = '{"jobs":[' .. table.concat(jobs, ",") .. ']}'
