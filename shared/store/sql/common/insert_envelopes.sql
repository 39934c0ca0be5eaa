-- What the clients sent.
INSERT INTO job_envelopes {values: job_seq, retry, args, meta, options, extra, parent_results}
