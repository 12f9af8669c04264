/** A network of real brokers for tests, in a separate process that follows commands. */

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const PYTHON = process.env.GAPLESS_PYTHON ?? `${ROOT}.venv/bin/python`;

/** @param {string[]} options */
export async function startNetwork(...options) {
  const child = spawn(PYTHON, ["-m", "tests.http.js_network", ...options], {
    cwd: ROOT,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const say = async (/** @type {string} */ command) => {
    child.stdin.write(`${command}\n`);
    const { value, done } = await lines.next();
    if (done) throw new Error(`the network ended at ${command}`);
    return JSON.parse(value);
  };
  /** @type {Record<string, string>} */
  const urls = JSON.parse((await lines.next()).value ?? "null");
  return {
    urls,
    crash: (/** @type {string} */ name) => say(`crash ${name}`),
    /** End all HTTP connections of a broker, which continues to run. */
    cut: (/** @type {string} */ name) => say(`cut ${name}`),
    stop: async () => {
      child.stdin.end();
      await new Promise((resolve) => child.on("exit", resolve));
    },
  };
}
