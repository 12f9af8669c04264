/** Requests to the broker, with the token of this tab. The token is stored nowhere else, and only this script sends it. */

import { Client, GaplessError } from "/console/gapless.js";

const KEY = "gapless-token";

export { GaplessError };

export const session = {
  get token() { return sessionStorage.getItem(KEY) ?? ""; },
  set token(value) { value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY); },
  /** The answer of `/api/me`. */
  me: null,
  get rights() { return this.me?.rights ?? {}; },
};

export const client = new Client(location.origin, { token: () => session.token, timeoutMs: 8000 });

/** Return the JSON of a response. Throws a `GaplessError` if it is a problem document. */
export async function get(path) {
  return (await client.open("GET", path, { signal: AbortSignal.timeout(8000) })).json();
}

export async function send(method, path, body) {
  const response = await client.open(method, path, { body, signal: AbortSignal.timeout(15000) });
  return response.status === 204 ? null : response.json();
}

const IDLE_MS = 8000;

/** Yield the lines of `/api/watch`. Throws a `GaplessError` if the broker ends the stream, or is silent for 8 s. */
export async function* lines(query, signal) {
  const silence = new AbortController();
  let timer = 0;
  const wait = () => { clearTimeout(timer); timer = setTimeout(() => silence.abort(new Error("no data for 8 s")), IDLE_MS); };
  let reader = null;
  try {
    wait();
    const response = await client.open("GET", `/api/watch?${query}`, { signal: AbortSignal.any([signal, silence.signal]) });
    reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      if (done) throw new GaplessError("the stream has ended");
      wait();
      const complete = (rest + value).split("\n");
      rest = complete.pop();
      yield* complete.map((line) => JSON.parse(line));
    }
  } finally {
    clearTimeout(timer);
    reader?.cancel().catch(() => {});
  }
}
