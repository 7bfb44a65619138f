package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/retcon-dev/retcon"
)

// tool is what is said of a tool.
type tool struct {
	name, title, about string

	needs       Capability
	destructive bool // it can take something away, if only until it is undone
	idempotent  bool // twice is as good as once
	open        bool // it reaches beyond the workspace
}

// call is a call being answered: the workspace, opened for it, and who made it.
type call struct {
	*retcon.Workspace
	s     *Server
	actor string
	tool  string
}

// turn keeps other calls of this server from writing until done is called.
func (c *call) turn() (done func(), err error) {
	return c.s.turn.take(c.actor, c.tool, c.s.opt.Now())
}

// add offers a tool, if callers may use it.
func add[In, Out any](o *offer, t tool, do func(context.Context, *call, In) (Out, error)) {
	o.needs[t.name] = t.needs
	if o.may(t.needs) != nil {
		return
	}
	sdk.AddTool(o.sdk, &sdk.Tool{
		Name: t.name, Title: t.title, Description: t.about,
		InputSchema: inputSchema[In](), OutputSchema: outputSchema[Out](),
		Annotations: &sdk.ToolAnnotations{Title: t.title, ReadOnlyHint: t.needs == Read, DestructiveHint: &t.destructive,
			IdempotentHint: t.idempotent || t.needs == Read, OpenWorldHint: &t.open},
	}, func(ctx context.Context, req *sdk.CallToolRequest, in In) (_ *sdk.CallToolResult, out Out, err error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(o.going, cancel)()
		actor := o.actor(req)
		w, err := o.opt.Open(ctx, actor)
		if err != nil {
			return nil, out, doneError{err}
		}
		out, err = do(ctx, &call{Workspace: w, s: o.Server, actor: actor, tool: t.name}, in)
		if err = errors.Join(err, w.Close()); err != nil {
			return nil, out, doneError{err}
		}
		return nil, out, nil
	})
}

// schemas are those of types whose JSON is not what their fields look like.
var schemas = map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {}}

// words are the values that arguments with few of them take.
var words = map[string][]any{
	"conflicts": {"", "theirs", "mine"},
	"reapply":   {"", "all", "none"},
	"tier":      {"", "manual", "tool", "watch", "safety", "rescue"},
}

func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: schemas})
	if err != nil {
		panic(fmt.Sprintf("BUG: %T has no schema: %v", *new(T), err))
	}
	return s
}

func inputSchema[In any]() *jsonschema.Schema {
	s := schemaOf[In]()
	for name, values := range words {
		if p := s.Properties[name]; p != nil {
			p.Enum = values
		}
	}
	return s
}

// outputSchema is either the answer or the error: clients hold both to it.
func outputSchema[Out any]() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", AnyOf: []*jsonschema.Schema{schemaOf[Out](), schemaOf[retcon.Explained]()}}
}
