package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/retcon-dev/retcon"
)

// Codes of errors that only this door has, beside those of retcon.Explain.
const (
	CodeCapabilityMissing = "CAPABILITY_MISSING"
	CodeBug               = "BUG"
)

// UnconfirmedError says that a plan was named and not confirmed. Nothing was
// changed.
type UnconfirmedError struct{ Tool, PlanID string }

func (e *UnconfirmedError) Error() string {
	return fmt.Sprintf("nothing was changed: plan %s is carried out with confirm: true", e.PlanID)
}

// doneError is what a tool failed with. What fails without it is the fault of
// the arguments, which never reached the tool.
type doneError struct{ error }

func (e doneError) Unwrap() error { return e.error }

// brokenError is a broken promise between lines of ours.
type brokenError struct{ said string }

func (e *brokenError) Error() string { return "BUG: " + e.said }

// explain chooses code, message and hints. What the front door knows is
// explained there, for all doors alike; here is what only this one has.
func explain(err error) retcon.Explained {
	var (
		done    doneError
		busy    *BusyError
		missing *CapabilityError
		not     *UnconfirmedError
		stale   *StalePreviewError
		broken  *brokenError
	)
	said := func(code string, hints ...string) retcon.Explained {
		return retcon.Explained{Code: code, Message: err.Error(), Hints: append([]string{}, hints...)}
	}
	switch {
	case errors.As(err, &missing):
		return said(CodeCapabilityMissing, "retcon mcp serve --allow "+list(append(slices.Clone(missing.Allowed), missing.Missing), ","))
	case errors.As(err, &broken):
		return said(CodeBug)
	case errors.As(err, &busy):
		e := said(retcon.CodeLocked)
		e.Holder, e.Since = busy.Who, &busy.Since
		return e
	case errors.As(err, &stale):
		return said(retcon.CodeStalePlan)
	case errors.As(err, &not):
		return said(retcon.CodeConfirmationNeeded)
	case errors.As(err, &done):
		return retcon.Explain(done.error)
	}
	return said(retcon.CodeUsage)
}

// refused is an error as an answer.
func refused(err error) *sdk.CallToolResult {
	e := explain(err)
	e.Message = retcon.Redacted(e.Message)
	b, jerr := json.Marshal(e)
	if jerr != nil {
		panic("BUG: an explanation has no JSON: " + jerr.Error())
	}
	return &sdk.CallToolResult{IsError: true, StructuredContent: json.RawMessage(b), Content: []sdk.Content{&sdk.TextContent{Text: string(b)}}}
}

// answered is an answer as it leaves the machine.
func answered(r *sdk.CallToolResult) *sdk.CallToolResult {
	if r.IsError {
		err := r.GetError()
		if err == nil {
			err = errors.New("the arguments make no sense")
		}
		return refused(err)
	}
	doc, ok := r.StructuredContent.(json.RawMessage)
	if !ok {
		return r
	}
	text := retcon.Redacted(string(doc))
	r.StructuredContent, r.Content = json.RawMessage(text), []sdk.Content{&sdk.TextContent{Text: text}}
	return r
}
