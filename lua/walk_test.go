package lua

import "reflect"

// walk visits a syntax tree: every node, before what it is made of.
func walk(node any, visit func(node any)) { walkValue(reflect.ValueOf(node), visit) }

func walkValue(v reflect.Value, visit func(node any)) {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			walkValue(v.Elem(), visit)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			visit(v.Interface())
			walkValue(v.Elem(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkValue(v.Index(i), visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				walkValue(v.Field(i), visit)
			}
		}
	default: // a leaf
	}
}
