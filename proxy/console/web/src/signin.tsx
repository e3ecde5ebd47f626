// Asks for a token, if the sidecar knows the caller by one.
import { useState } from "preact/hooks";
import { follow, setToken, token } from "./api";
import { changed, live, useLive } from "./store";

export function SignIn() {
  const { failure } = useLive();
  const [text, setText] = useState(token());
  const enter = (event: Event) => {
    event.preventDefault();
    setToken(text.trim());
    live.link = "connecting";
    changed();
    follow("");
  };
  return (
    <section class="signin">
      <h1>Who are you?</h1>
      <p>This sidecar has a policy. It shows what your identity may receive from.</p>
      <form onSubmit={enter}>
        <label for="token">Token</label>
        <input id="token" type="password" autocomplete="off" value={text} onInput={(e) => setText(e.currentTarget.value)} aria-describedby="token-help" />
        <p id="token-help">The content of a token file, or a shared access signature. The browser forgets it when you close this tab.</p>
        <button class="primary">Continue</button>
      </form>
      {token() !== "" && <p class="notice bad" role="alert">{failure}</p>}
    </section>
  );
}
