/** The data that the page watches, as one stream of its broker: whole documents first, then changes. */

import { GaplessError, lines } from "/console/api.js";

const AGAIN_MS = 1000;

let current = null;

/**
 * Watch these topics instead of the previous ones. `seen(topic, document, problem)` is called whenever a document
 * changes, and `failed(error)` when the broker does not answer; then the stream is opened again, unless `failed`
 * returns false.
 */
export async function follow(query, seen, failed) {
  current?.abort();
  const { signal } = (current = new AbortController());
  while (!signal.aborted) {
    const documents = {};
    try {
      for await (const { topic, whole, change, problem } of lines(query, signal)) {
        if (problem && !topic) throw new GaplessError(problem.detail, problem);
        if (signal.aborted) return;
        documents[topic] = problem ? undefined : whole ?? merged(documents[topic], change);
        seen(topic, documents[topic], problem);
      }
    } catch (error) {
      if (signal.aborted || failed(error) === false) return;
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

/** Stop watching. */
export function pause() {
  current?.abort();
}

/** Return a document with a merge patch (RFC 7396) applied. */
function merged(document, patch) {
  const made = { ...document };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete made[key];
    else made[key] = isObject(value) && isObject(made[key]) ? merged(made[key], value) : value;
  }
  return made;
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
