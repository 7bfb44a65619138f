package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	_ "github.com/mattn/go-sqlite3" // to move the logs of both into their files

	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
	"github.com/retcon-dev/retcon/scripts/bench/internal/ground"
)

// ledgerFile is where the engine writes.
const ledgerFile = "ledger.db"

// engine are the rows of the bench.
type engine struct {
	*ground.Ground
	n            int
	ours, theirs contestant
	none         error // why there is no peer
}

// contestant is a program that carries out steps when it is told to.
type contestant struct {
	name string
	args []string
	file string // in its folder
	dir  string // of the last round
}

// do runs the contestant's program, and returns what a step of it cost.
func (c *contestant) do(ctx context.Context, what string, n int) (bench.Usage, error) {
	home := "HOME=" + c.dir
	out, _, err := bench.Command{Dir: c.dir, Env: []string{home}, Args: append(c.args[:len(c.args):len(c.args)], what, c.dir, strconv.Itoa(n))}.Run(ctx)
	if err != nil || len(out) == 0 { // it has died, as it was told to
		return bench.Usage{}, err
	}
	var spent cost
	err = json.Unmarshal(out, &spent)
	return bench.Usage{CPU: time.Duration(spent.CPU) / time.Duration(n), Wall: time.Duration(spent.Wall) / time.Duration(n)}, err
}

// fresh gives a contestant an empty folder, and removes the one before.
func (e *engine) fresh(c *contestant, round int) (err error) {
	if c.dir != "" {
		if err := os.RemoveAll(c.dir); err != nil {
			return err
		}
	}
	c.dir, err = e.Folder(fmt.Sprintf("%s-%d", c.name, round))
	return err
}

// size is how large a contestant's file is, with what its log holds.
func (c *contestant) size() (int64, error) {
	path := filepath.Join(c.dir, c.file)
	db, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		return 0, err
	}
	var busy, log, moved int
	err = db.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
	if err == nil && busy != 0 {
		err = errors.New("the log is in use")
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return 0, err
	}
	s, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return s.Size(), nil
}

// rows are a contest's, by what is compared.
type rows struct {
	cpu, wall string
	goal      *float64 // of cpu
}

// play plays a contest and reports it.
func (e *engine) play(ctx context.Context, r rows, c bench.Contest) error {
	e.Say("%s, against %s", r.cpu, peerName)
	pairs, err := c.Play(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	spent, took := e.Report.Row(r.cpu, peerName, r.goal), e.Report.Row(r.wall, peerName, nil)
	if err != nil {
		spent, took = spent.Fail(err), took.Fail(err)
	} else {
		spent, took = spent.Measure(pairs, cpu), took.Measure(pairs, bench.Wall)
	}
	return errors.Join(e.Report.Add(spent), e.Report.Add(took))
}

// carryOut is of steps that nobody has carried out yet.
func (e *engine) carryOut(ctx context.Context) error {
	const size = "bytes per step"
	r := rows{cpu: "CPU per step", wall: "wall per step", goal: bench.Goal(0.8)}
	if !e.Wants(r.cpu) && !e.Wants(r.wall) && !e.Wants(size) {
		return nil
	}
	if e.none != nil {
		return errors.Join(e.Skip(r.cpu, peerName, r.goal, e.none.Error()), e.Skip(size, peerName, bench.Goal(1.3), e.none.Error()))
	}
	side := func(c *contestant) bench.Side {
		return bench.Side{Name: c.name, Prepare: func(round int) error { return e.fresh(c, round) },
			Run: func(ctx context.Context) (bench.Usage, error) { return c.do(ctx, "run", e.n) }}
	}
	if err := e.play(ctx, r, bench.Contest{Ours: side(&e.ours), Theirs: side(&e.theirs), Rounds: e.Rounds, Warm: true}); err != nil {
		return err
	}
	row := e.Report.Row(size, peerName, bench.Goal(1.3))
	ours, err := e.perStep(ctx, &e.ours)
	if err != nil {
		return e.Report.Add(row.Fail(err))
	}
	theirs, err := e.perStep(ctx, &e.theirs)
	if err != nil {
		return e.Report.Add(row.Fail(err))
	}
	return e.Report.Add(row.Compare(ours, theirs, "B"))
}

// perStep is how many bytes a step has added to a contestant's file.
func (e *engine) perStep(ctx context.Context, c *contestant) (float64, error) {
	full, err := c.size()
	if err == nil {
		err = e.fresh(c, -1)
	}
	if err == nil {
		_, err = c.do(ctx, "run", 1)
	}
	if err != nil {
		return 0, err
	}
	one, err := c.size()
	return float64(full-one) / float64(e.n-1), err
}

// replay is of steps that were carried out, all but the last, by a process that
// died in that one.
func (e *engine) replay(ctx context.Context) error {
	r := rows{cpu: "CPU per recorded step, replayed", wall: "wall per recorded step, replayed", goal: bench.Goal(0.2)}
	if !e.Wants(r.cpu) && !e.Wants(r.wall) {
		return nil
	}
	if e.none != nil {
		return e.Skip(r.cpu, peerName, r.goal, e.none.Error())
	}
	broken := func(c *contestant) func(int) error {
		return func(round int) error {
			err := e.fresh(c, 1000+round)
			if err == nil {
				_, err = c.do(ctx, "break", e.n)
			}
			return err
		}
	}
	resume := func(ctx context.Context) (bench.Usage, error) { return e.ours.do(ctx, "resume", e.n) }
	return e.play(ctx, r, bench.Contest{Rounds: e.Rounds, Warm: true,
		Ours:   bench.Side{Name: e.ours.name, Prepare: broken(&e.ours), Run: resume},
		Theirs: bench.Side{Name: peerName, Prepare: broken(&e.theirs), Run: e.recover}})
}

// recover has the peer go on when it starts. What starting takes by itself is
// taken off.
func (e *engine) recover(ctx context.Context) (bench.Usage, error) {
	u, err := e.theirs.do(ctx, "resume", e.n)
	if err != nil {
		return u, err
	}
	idle, err := e.theirs.do(ctx, "idle", e.n)
	return bench.Usage{CPU: u.CPU - idle.CPU, Wall: u.Wall - idle.Wall}, err
}
