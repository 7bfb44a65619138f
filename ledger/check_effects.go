package ledger

// effects looks at what belongs together in effects and what is open about runs.
func (c *check) effects() error {
	_, err := all(c.tx, readEffect, `SELECT `+effectColumns+` FROM effect ORDER BY id`)
	if err != nil {
		c.found(ProblemRow, "effects", "%v", err)
	}
	return c.each(ProblemRow, `
		SELECT 'effect ' || e.id, 'its attempt is of another run' FROM effect e JOIN attempt a ON a.id = e.attempt_id WHERE a.run_id <> e.run_id
		UNION ALL SELECT 'effect ' || e.id, 'its branch is missing, or of another run' FROM effect e LEFT JOIN branch b ON b.id = e.branch_id
			WHERE e.branch_id IS NOT NULL AND (b.id IS NULL OR b.run_id <> e.run_id)
		UNION ALL SELECT 'effect ' || e.id, 'belongs to frame ' || e.seq || ' of a branch that goes from ' || b.base_seq || ' to ' || b.head_seq
			FROM effect e JOIN branch b ON b.id = e.branch_id WHERE e.seq <= b.base_seq OR e.seq > b.head_seq + 1
		UNION ALL SELECT 'effect ' || e.id, 'is undone by op ' || o.id || ', which has ended'
			FROM effect e JOIN op o ON o.id = e.comp_op WHERE e.comp = 'compensating' AND o.result IS NOT NULL
		UNION ALL SELECT 'effect ' || e.id, 'was undone, and the result of attempt ' || a.id || ' still counts'
			FROM effect e JOIN attempt a ON a.id = e.attempt_id WHERE e.comp = 'compensated' AND a.compensated = 0
		UNION ALL SELECT 'attention ' || t.id, 'its effect is of another run' FROM attention t JOIN effect e ON e.id = t.effect_id WHERE e.run_id <> t.run_id`)
}
