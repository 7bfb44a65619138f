package sideeffect

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"
)

// A sending is one HTTP request that undoes something.
type sending struct {
	client  *http.Client
	method  string
	url     string
	headers http.Header
	body    []byte
	expect  []int
}

// run tells a request that never left from one whose answer was lost.
func (s sending) run(ctx context.Context) Outcome {
	var left atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { left.Store(true) }})
	q, err := http.NewRequestWithContext(ctx, s.method, s.url, bytes.NewReader(s.body))
	if err != nil {
		return Outcome{Result: Refused, Detail: "not sent: " + line(err.Error())}
	}
	q.Header = s.headers.Clone()
	client := *s.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := client.Do(q)
	switch {
	case err != nil && !left.Load():
		return Outcome{Result: Refused, Detail: "not sent: " + line(err.Error())}
	case err != nil && ctx.Err() != nil:
		return Outcome{Result: Unsure, Detail: cut(ctx)}
	case err != nil:
		return Outcome{Result: Unsure, Detail: "no answer: " + line(err.Error())}
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(answer.Body, outputCap)) // the status has said it
	return Outcome{Result: s.result(answer.StatusCode), Detail: s.detail(answer, body), Output: head(string(body))}
}

// result reads a status. After a server error the work may have been done; after
// "not implemented", "unavailable" and everything in the 400s it was not.
func (s sending) result(status int) Result {
	switch {
	case len(s.expect) > 0 && slices.Contains(s.expect, status):
		return Done
	case len(s.expect) == 0 && status/100 == 2:
		return Done
	case len(s.expect) == 0 && s.method == http.MethodDelete && (status == http.StatusNotFound || status == http.StatusGone):
		return Done
	case status == http.StatusNotImplemented || status == http.StatusServiceUnavailable:
		return Refused
	case status/100 == 5 || status/100 == 2:
		return Unsure
	}
	return Refused
}

func (s sending) detail(answer *http.Response, body []byte) string {
	if s.result(answer.StatusCode) == Done {
		return ""
	}
	if to := answer.Header.Get("Location"); answer.StatusCode/100 == 3 && to != "" {
		return fmt.Sprintf("%s to %s, which is not followed", answer.Status, line(to))
	}
	if said := line(string(body)); said != "" {
		return answer.Status + ": " + said
	}
	return answer.Status
}
