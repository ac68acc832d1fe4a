import type { ToolError, ToolErrorCode } from '@shellfleet/protocol';
import { NotJsonError, toFieldIssues, toIssueText, toJsonText } from '@shellfleet/protocol/plain';
import type { z } from 'zod';
import { loadModule } from './load-module.ts';
import type { ChildRequest } from './request.ts';

/** Returns the output of a call as JSON, or how the call failed. Rethrows the tool's own errors. */
export async function runTool(
  { module, exported, name, outputBytes }: Extract<ChildRequest, { type: 'call' }>,
  args: unknown,
  signal: AbortSignal,
): Promise<string | ToolError> {
  const tool = (await loadModule(module)).get(exported);
  if (tool === undefined) return fail('error', `module ${module} does not export ${exported} any more`);
  const input = await tool.input.safeParseAsync(args, { error: toIssueText });
  if (!input.success)
    return failFields('arguments-invalid', `the arguments of tool '${name}' are not valid`, input.error);
  const returned = await tool.run(input.data, { signal });
  const output = await tool.output?.safeParseAsync(returned, { error: toIssueText });
  if (output?.success === false)
    return failFields('output-invalid', `the output of tool '${name}' is not what it declares`, output.error);
  return toText(name, output === undefined ? returned : output.data, outputBytes);
}

function toText(name: string, value: unknown, mostBytes: number): string | ToolError {
  try {
    const text = toJsonText(value, 'output');
    const bytes = Buffer.byteLength(text);
    if (bytes <= mostBytes) return text;
    return fail('too-large', `the output of tool '${name}' is ${bytes} bytes; the limit is ${mostBytes}`);
  } catch (error) {
    if (!(error instanceof NotJsonError)) throw error;
    return fail('not-json', `the output of tool '${name}' is not JSON (${error.message}). Return plain values.`);
  }
}

function failFields(code: ToolErrorCode, what: string, error: z.core.$ZodError): ToolError {
  const issues = error.issues.flatMap(toFieldIssues);
  const list = issues.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; ');
  return { ...fail(code, `${what}: ${list}`), context: { issues } };
}

function fail(code: ToolErrorCode, message: string): ToolError {
  return { code, message: `Shellfleet: ${message}` };
}
