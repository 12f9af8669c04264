/** Requests to the broker, with the token of this tab. The token is kept nowhere else, and sent by this script only. */

import { Client, GaplessError } from "/console/gapless.js";

const KEY = "gapless-token";

export { GaplessError };

export const session = {
  get token() { return sessionStorage.getItem(KEY) ?? ""; },
  set token(value) { value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY); },
  /** What `/api/me` said. */
  me: null,
  get rights() { return this.me?.rights ?? {}; },
};

export const client = new Client(location.origin, { token: () => session.token, timeoutMs: 8000 });

/** The JSON of an answer; a `GaplessError` if it is a problem. */
export async function get(path) {
  return (await client.open("GET", path, { signal: AbortSignal.timeout(8000) })).json();
}

export async function send(method, path, body) {
  const response = await client.open(method, path, { body, signal: AbortSignal.timeout(15000) });
  return response.status === 204 ? null : response.json();
}
