/** Loaded before a child's own script: when whoever started it is gone, however it went, the child ends too. */
process.stdin.resume();
process.stdin.unref(); // a script that has nothing left to do ends by itself
process.stdin.once("close", () => process.exit(0));
process.stdin.once("end", () => process.exit(0));
