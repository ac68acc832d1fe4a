import { describe, expect, test } from 'vitest';
import * as exported from './index.ts';

describe('the package', () => {
  // S1-55
  test('exports the names of LangChain and its own', () => {
    expect(Object.keys(exported).toSorted()).toEqual([
      'CodexSandboxExecutionPolicy',
      'DockerExecutionPolicy',
      'HostExecutionPolicy',
      'RedactionRule',
      'ShellToolMiddleware',
      'shellTool',
      'shellToolMiddleware',
    ]);
  });
});
