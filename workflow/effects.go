package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/internal/redact"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// made is an effect of an attempt that goes on.
type made struct {
	row   ledger.Effect
	whole bool // it is all that the task does; otherwise one command of several
}

// intend records what an attempt will do outside its worktree, before it does.
func (e *engine) intend(ctx context.Context, t *task, x *execution) ([]made, error) {
	found, whole := e.effectsOf(t, x)
	if len(found) == 0 {
		return nil, nil
	}
	all := make([]made, len(found))
	err := e.opt.Ledger.Update(context.WithoutCancel(ctx), func(tx *ledger.Tx) error {
		for i, f := range found {
			row := ledger.Effect{Effect: checkpoint.RedactEffect(redactor(), f), RunID: e.run.ID, Branch: e.branch,
				Frame: x.seq + 1, Attempt: x.row, Task: t.id}
			call := callOf(x)
			if !whole {
				call = fmt.Sprintf("%d.%d", x.Attempt, i+1)
			}
			row, err := tx.Intend(row, !whole || x.anew, func(epoch int) string { return sideeffect.Key(e.run.UID, t.id, call, epoch) })
			if err != nil {
				return err
			}
			all[i] = made{row: row, whole: whole}
		}
		return nil
	})
	crash.Point("workflow.intended")
	return all, err
}

func redactor() *redact.Redactor { return redact.New() }

// effectsOf are the effects of a task as far as they are known beforehand. A
// task that is declared to act outside, or says how that is undone, is one
// effect; of another command those are that the rules recognise.
func (e *engine) effectsOf(t *task, x *execution) (found []sideeffect.Effect, whole bool) {
	declared := t.decl.Fx == FxExternal || t.decl.compensated()
	whole = declared
	switch t.decl.Kind {
	case KindHTTP:
		method := text(x.Args, "method")
		switch {
		case method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions:
			if !declared {
				return nil, false
			}
		}
		whole = true
	case KindShell:
		found = e.opt.Rules.Recognise(toolCall(x))
		if !declared || !t.decl.compensated() && len(found) > 0 {
			return found, false
		}
	default:
		if !declared {
			return nil, false
		}
	}
	one := sideeffect.Effect{Tool: t.decl.Kind, Rule: t.decl.Name, Class: sideeffect.Write, Args: json.RawMessage(value.JSON(x.Args))}
	if t.decl.Undo != nil {
		one.Compensation = *t.decl.Undo
	}
	switch t.decl.Kind {
	case KindShell:
		one.Command = commandLine(x.Args)
	case KindHTTP:
		one.Command = text(x.Args, "method") + " " + text(x.Args, "url")
	}
	return []sideeffect.Effect{one}, whole
}

// toolCall is a command as the rules look at it.
func toolCall(x *execution) sideeffect.ToolCall {
	call := sideeffect.ToolCall{Tool: KindShell, Command: commandLine(x.Args), Exit: x.tape.exit}
	if call.Exit != nil {
		call.Output = string(x.tape.stdout) + string(x.tape.stderr)
	}
	return call
}

// commandLine is what a task runs, as it could be typed into a shell.
func commandLine(args value.Dict) string {
	list, ok := args.Get("argv")
	if !ok {
		return text(args, "command")
	}
	words, _ := list.([]value.V)
	line := make([]string, len(words))
	for i, w := range words {
		line[i] = "'" + strings.ReplaceAll(shown(w), "'", `'\''`) + "'"
		if s := shown(w); s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,") == "" {
			line[i] = s
		}
	}
	return strings.Join(line, " ")
}

// key is the idempotency key of the one effect that the task is.
func (x *execution) key() string {
	if len(x.effects) == 1 && x.effects[0].whole {
		return x.effects[0].row.Key
	}
	return ""
}

// settleEffects records what came of the effects of an attempt, as soon as it
// is known.
func (e *engine) settleEffects(x *execution, r tried, cut bool) error {
	if len(x.effects) == 0 {
		return nil
	}
	var after []sideeffect.Effect
	if !x.effects[0].whole {
		after = e.opt.Rules.Recognise(toolCall(x))
	}
	crash.Point("workflow.done")
	return e.opt.Ledger.Update(context.Background(), func(tx *ledger.Tx) error {
		for i, m := range x.effects {
			now := sideeffect.Effect{Status: sideeffect.Unknown}
			switch {
			case m.whole:
				now = x.came(r, cut)
			case i < len(after) && !cut:
				now = after[i]
			}
			if err := m.settle(tx, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// settle writes an outcome. Nobody takes back that a call may have arrived before
// because the same call was refused later.
func (m made) settle(tx *ledger.Tx, now sideeffect.Effect) error {
	if m.row.Status != sideeffect.Intended && now.Status != sideeffect.Succeeded {
		return nil
	}
	if now.Status == sideeffect.Intended {
		now.Status = sideeffect.Unknown
	}
	return tx.SettleAs(m.row.ID, checkpoint.RedactEffect(redactor(), now))
}

// came is what came of a task that is one effect. A command that ends with an
// error, and a server that refuses, say that nothing was done.
func (x *execution) came(r tried, cut bool) sideeffect.Effect {
	e := sideeffect.Effect{Status: sideeffect.Unknown, Fields: map[string]string{}}
	exit := x.tape.exit
	http := x.effects[0].row.Tool == KindHTTP
	switch {
	case cut && exit == nil:
		return e
	case exit == nil && r.failure == nil && r.err == nil: // a function
		e.Status = sideeffect.Succeeded
		return e
	case exit == nil && r.failure != nil && r.failure.Type != FailureTimeout && !http: // it was never started, or a function said no
		e.Status = sideeffect.Failed
		return e
	case exit == nil && x.unsent:
		e.Status = sideeffect.Failed
		return e
	case exit == nil:
		return e
	case http && *exit >= 200 && *exit <= 299, !http && *exit == 0:
		e.Status = sideeffect.Succeeded
	case http && *exit >= 400 && *exit <= 499, !http && *exit > 0 && !cut:
		e.Status = sideeffect.Failed
		return e
	default:
		return e
	}
	e.Output = strings.ToValidUTF8(strings.TrimSpace(string(x.tape.stdout)), "\uFFFD")
	e.Fields["out"] = e.Output
	for name, v := range members(e.Output) {
		e.Fields[name] = v
	}
	return e
}

// members are the plain ones of a JSON object, as text.
func members(document string) map[string]string {
	d := json.NewDecoder(strings.NewReader(document))
	d.UseNumber()
	var object map[string]any
	if d.Decode(&object) != nil {
		return nil
	}
	found := map[string]string{}
	for name, v := range object {
		switch v := v.(type) {
		case string:
			found[name] = v
		case json.Number:
			found[name] = v.String()
		case bool:
			found[name] = strconv.FormatBool(v)
		}
	}
	return found
}

// unsent tells that a request did not leave.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
