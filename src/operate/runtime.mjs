import { setFlagsFromString } from "node:v8";

/**
 * Plain JavaScript that imports nothing of ours: an older Node.js refuses the first .ts file before it could say why.
 */

const oldestMajor = 26;

/**
 * The sentence to print when this Node.js is too old, or undefined.
 *
 * @param {string} version as in `process.version`
 * @param {string} path of the program that runs
 * @returns {string | undefined}
 */
export function runtimeProblem(version, path) {
  const [, major] = /^v?(\d+)\./.exec(version) || [];
  if (Number(major) >= oldestMajor) return undefined;
  return `Gatehouse needs Node.js ${oldestMajor} or newer, and this is ${version} (${path}). In production, install it or use the Docker image. In a checkout, "npm ci" brings it and the npm scripts use it, unless npm blocked the install script of the package "node".`;
}

/**
 * Node strips types by WebAssembly. V8 would optimize that while the files are loaded, for a start that is no faster, in threads
 * whose 13 MB aren't given back (decision 040).
 */
const wasmAsItIs = "--wasm-tiering-budget=2147483647";

/**
 * Loads a program of Gatehouse. Where this Node.js is too old, or the packages aren't installed, it says so instead, and the
 * process ends with 78.
 *
 * @param {URL} program
 */
export async function begin(program) {
  const problem = runtimeProblem(process.version, process.execPath);
  if (problem !== undefined) return refuse(problem);
  setFlagsFromString(wasmAsItIs);
  try {
    await import(program.href);
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
    const [, name] = /^Cannot find package '([^']+)'/.exec(message) || [];
    if (code !== "ERR_MODULE_NOT_FOUND" || name === undefined) throw error;
    refuse(`Gatehouse's packages aren't installed (${name} is missing): run "npm ci" first.`);
  }
}

/** @param {string} sentence */
function refuse(sentence) {
  process.stderr.write(`${sentence}\n`);
  process.exitCode = 78;
}
