package redisstore

import (
	storagev1 "github.com/sidebus/sidebus/proto/sidebus/storage/v1"
	"github.com/sidebus/sidebus/semantics"
)

func encodeProperties(properties map[string]semantics.Value) []*storagev1.Property {
	var encoded []*storagev1.Property
	for name, v := range properties {
		encoded = append(encoded, encodeProperty(name, v))
	}
	return encoded
}

func decodeProperties(encoded []*storagev1.Property) (map[string]semantics.Value, error) {
	if len(encoded) == 0 {
		return nil, nil
	}
	properties := make(map[string]semantics.Value, len(encoded))
	for _, p := range encoded {
		v, err := decodeProperty(p)
		if err != nil {
			return nil, unreadable(err)
		}
		properties[p.Name] = v
	}
	return properties, nil
}

func encodeProperty(name string, v semantics.Value) *storagev1.Property {
	p := &storagev1.Property{Name: name, Type: storagev1.Property_Type(v.Type())}
	switch v.Type() {
	case semantics.TypeNull:
	case semantics.TypeUint64:
		p.Uint = v.Uint()
	case semantics.TypeFloat, semantics.TypeDouble:
		p.Float = v.Float()
	case semantics.TypeBytes:
		p.Bytes = []byte(v.Text())
	case semantics.TypeString, semantics.TypeURI, semantics.TypeUUID, semantics.TypeDecimal, semantics.TypeDateTime,
		semantics.TypeDateTimeOffset:
		p.Text = v.Text()
	default:
		p.Int = v.Int()
	}
	return p
}

func decodeProperty(p *storagev1.Property) (semantics.Value, error) {
	switch t := semantics.ValueType(p.Type); t { //nolint:gosec // the numbers are the same
	case semantics.TypeNull:
		return semantics.Null(), nil
	case semantics.TypeBool:
		return semantics.Bool(p.Int != 0), nil
	case semantics.TypeUint64:
		return semantics.Uint64(p.Uint), nil
	case semantics.TypeFloat:
		return semantics.Float(p.Float), nil
	case semantics.TypeDouble:
		return semantics.Double(p.Float), nil
	case semantics.TypeBytes:
		return semantics.Bytes(p.Bytes), nil
	case semantics.TypeString, semantics.TypeURI, semantics.TypeUUID, semantics.TypeDecimal, semantics.TypeDateTime,
		semantics.TypeDateTimeOffset:
		return semantics.TextOf(t, p.Text)
	default:
		return semantics.IntegerOf(t, p.Int)
	}
}
