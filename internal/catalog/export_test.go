package catalog

// CheckCreativeForm judges what the schema judges.
func CheckCreativeForm(e *Creative) error {
	var p problems
	e.validateForm(&p)
	return p.err()
}

// TakeDecoder takes a place of those that images are looked at in, until release is
// called.
func TakeDecoder() (release func()) {
	decoding <- struct{}{}
	return func() { <-decoding }
}

// Examine is what Rehost finds before it keeps anything.
func Examine(data []byte) (Asset, error) {
	a, problem := examine(data)
	if problem != nil {
		return a, &InvalidError{Problems: []Problem{*problem}}
	}
	return a, nil
}
