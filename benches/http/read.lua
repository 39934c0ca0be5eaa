-- One job, again and again. Its id is the argument.
require("figures")

function init(arguments)
    wrk.path = "/ojs/v1/jobs/" .. arguments[1]
end
