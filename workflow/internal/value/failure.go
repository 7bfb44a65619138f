package value

// Failure is why a task failed, as a value: it is stored, handed to the body
// that asked for it, and the same again whenever it is read. It holds what the
// task said and nothing of the place it ran in: no stack, time, attempt or
// machine.
//
// It is an error, so errors.As finds it in one.
type Failure struct {
	Type    string // what kind of failure: exit, timeout, schema, or a name of the author's
	Message string // for people
	Code    string // for programs: an exit status, a name; may be ""
	Task    string // the id of the task that failed
	Data    V      // what else the type has to tell, or nil
}

func (f *Failure) Error() string {
	switch {
	case f.Message != "":
		return f.Message
	case f.Code != "":
		return f.Type + " " + f.Code
	}
	return f.Type
}

// V is the failure as a value.
func (f *Failure) V() V {
	d := DictOf(Entry{"type", f.Type}, Entry{"message", f.Message}, Entry{"code", f.Code}, Entry{"task", f.Task})
	if f.Data != nil {
		d = d.With("data", f.Data)
	}
	return d
}

// FailureOf is the failure that v is the value of. An *Error names what is
// missing or wrong.
func FailureOf(v V) (*Failure, error) {
	d, ok := v.(Dict)
	if !ok {
		return nil, problem("%s is not a failure", kind(v))
	}
	f := &Failure{}
	for _, field := range []struct {
		key string
		to  *string
	}{{"type", &f.Type}, {"message", &f.Message}, {"code", &f.Code}, {"task", &f.Task}} {
		v, ok := d.Get(field.key)
		if !ok {
			return nil, inKey(field.key, problem("is missing"))
		}
		if *field.to, ok = v.(string); !ok {
			return nil, inKey(field.key, problem("is %s, not a string", kind(v)))
		}
	}
	f.Data, _ = d.Get("data")
	return f, nil
}
