-- One job per request.
require("figures")

wrk.method = "POST"
wrk.path = "/ojs/v1/jobs"
wrk.headers["Content-Type"] = "application/openjobspec+json"
wrk.body = '{"type":"bench.plain","args":["' .. string.rep("x", 200) .. '"],"options":{"queue":"bench"}}'
