/** A result as large as the smallest real result of `echo hi`. */
export function noopResult(output: string): string {
  return JSON.stringify({ outcome: 'success', exitCode: 0, stdout: output, stderr: '', output });
}
