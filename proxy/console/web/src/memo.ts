// memo skips the drawing of a part whose properties are the same.
import { Component, h, type ComponentChildren, type VNode } from "preact";

export function memo<P extends object>(draw: (props: P) => ComponentChildren, same: (a: P, b: P) => boolean): (props: P) => VNode {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      return !same(this.props as P, next);
    }
    override render(): ComponentChildren {
      return draw(this.props as P);
    }
  }
  return (props: P) => h(Memo as never, props as never);
}
