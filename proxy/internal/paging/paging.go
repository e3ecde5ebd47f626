// Package paging counts rows of listings, where clients of Service Bus name a number of rows to skip (ENT-17).
package paging

// Window returns what a listing has behind the first skip rows, at most top. Those before it are read too: the listings
// of the broker continue behind a token, not behind a number.
func Window[T any](skip, top int, page func(token string) ([]T, string, error)) (all []T, err error) {
	for token, isFirst := "", true; (token != "" || isFirst) && len(all) < top; isFirst = false {
		var some []T
		if some, token, err = page(token); err != nil {
			return nil, err
		}
		skipped := min(skip, len(some))
		skip -= skipped
		some = some[skipped:]
		all = append(all, some[:min(len(some), top-len(all))]...)
	}
	return all, nil
}
