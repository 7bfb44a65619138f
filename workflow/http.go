package workflow

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// runHTTP sends a request of the body. Every answer but one of 200 to 299 is a
// failure; one of 400 to 499 is final, but for 408 and 429.
func runHTTP(ctx context.Context, x *execution) (value.V, *value.Failure, error) {
	var body io.Reader
	if v, ok := x.Args.Get("body"); ok && v != nil {
		body = bytes.NewReader([]byte(shown(v)))
	}
	req, err := http.NewRequestWithContext(ctx, text(x.Args, "method"), text(x.Args, "url"), body)
	if err != nil {
		return nil, &value.Failure{Type: FailureHTTP, Code: "request", Message: err.Error()}, nil
	}
	if v, ok := x.Args.Get("body"); ok {
		if _, isText := v.(string); !isText {
			req.Header.Set("Content-Type", "application/json")
		}
	}
	headers, _ := x.Args.Get("headers")
	if d, ok := headers.(value.Dict); ok {
		for k, v := range d.All() {
			req.Header.Set(k, shown(v))
		}
	}
	if req.Header.Get("Idempotency-Key") == "" && req.Method != http.MethodGet && req.Method != http.MethodHead {
		req.Header.Set("Idempotency-Key", cmp.Or(x.key(), x.e.seed(x.Task)))
	}
	client := x.e.opt.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		x.unsent = unsent(err)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		return nil, &value.Failure{Type: FailureHTTP, Code: "connection", Message: err.Error()}, nil
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput+1))
	switch {
	case err != nil:
		return nil, &value.Failure{Type: FailureHTTP, Code: "connection", Message: err.Error()}, nil
	case len(b) > maxOutput:
		return nil, &value.Failure{Type: FailureOutput, Code: "truncated", Message: fmt.Sprintf("the answer is longer than the %d bytes that are kept", maxOutput)}, nil
	}
	x.tape.answer(resp.StatusCode, b)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		f := &value.Failure{Type: FailureHTTP, Code: strconv.Itoa(resp.StatusCode), Message: "the server answered " + resp.Status}
		if said := lastLines(b); said != "" {
			f.Message += ": " + said
		}
		if c := resp.StatusCode; c >= 400 && c < 500 && c != http.StatusRequestTimeout && c != http.StatusTooManyRequests {
			f.Type, f.Data = FailureRefused, "http"
		}
		return nil, f, nil
	}
	return httpValue(resp, b, x.Args)
}

func httpValue(resp *http.Response, b []byte, args value.Dict) (value.V, *value.Failure, error) {
	var out value.V = string(b)
	if flag(args, "json") {
		v, err := value.FromJSON(b)
		if err != nil {
			return nil, &value.Failure{Type: FailureOutput, Message: "the answer is not JSON: " + err.Error()}, nil
		}
		out = v
	}
	if f := checkSchema(args, out); f != nil {
		return nil, f, nil
	}
	return value.NewDict(map[string]value.V{"status": int64(resp.StatusCode), "body": out}), nil, nil
}
