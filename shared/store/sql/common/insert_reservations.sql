-- What jobs reserve.
INSERT INTO reservations {values: job_seq, budget_seq, tokens, money}
