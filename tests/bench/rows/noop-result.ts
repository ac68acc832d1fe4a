/** A result of the size that a real one of `echo hi` has, at its least. */
export function noopResult(output: string): string {
  return JSON.stringify({ outcome: 'success', exitCode: 0, stdout: output, stderr: '', output });
}
