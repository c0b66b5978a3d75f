package catalog

// CheckCreativeForm judges what the schema judges.
func CheckCreativeForm(e *Creative) error {
	var p problems
	e.validateForm(&p)
	return p.err()
}

// Examine is what Rehost finds before it keeps anything.
func Examine(data []byte) (Asset, error) {
	a, problem := examine(data)
	if problem != nil {
		return a, &InvalidError{Problems: []Problem{*problem}}
	}
	return a, nil
}
