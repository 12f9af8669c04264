/** What the page watches, as one stream of its broker: whole documents first, then what has changed. */

import { GaplessError, lines } from "/console/api.js";

const AGAIN_MS = 1000;

let current = null;

/**
 * Watch some topics instead of those before. `seen(topic, document, problem)` is told of each document whenever it
 * changes, and `failed(error)` when the broker does not answer; then the stream is opened again, unless that returns
 * false.
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

/** Watch nothing any more. */
export function pause() {
  current?.abort();
}

/** A document with a merge patch (RFC 7396). */
function merged(document, patch) {
  const made = { ...document };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete made[key];
    else made[key] = isObject(value) && isObject(made[key]) ? merged(made[key], value) : value;
  }
  return made;
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
