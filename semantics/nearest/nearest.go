// Package nearest finds what a person meant who mistyped a name.
package nearest

// most is how many letters may differ in a long name; in a short one, a third.
const most = 3

// Of returns the name that differs least from text, "" if all differ too much.
func Of(text string, names []string) string {
	best, least := "", min(most, (len(text)+1)/3)+1
	for _, name := range names {
		if d := distance(text, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
