import { describe, expectTypeOf, test } from 'vitest';
import type * as sdk from './index.ts';

type Undefined<Options> = { [field in keyof Options]: undefined };

describe('exported types', () => {
  test('accept undefined for every option, also under exactOptionalPropertyTypes', () => {
    expectTypeOf<Undefined<sdk.AttachOptions>>().toExtend<sdk.AttachOptions>();
    expectTypeOf<Undefined<sdk.BatchOptions>>().toExtend<sdk.BatchOptions>();
    expectTypeOf<Undefined<sdk.ConnectOptions>>().toExtend<sdk.ConnectOptions>();
    expectTypeOf<Undefined<sdk.FollowOptions>>().toExtend<sdk.FollowOptions>();
    expectTypeOf<Undefined<sdk.LimitOptions>>().toExtend<sdk.LimitOptions>();
    expectTypeOf<Undefined<sdk.ListOptions>>().toExtend<sdk.ListOptions>();
    expectTypeOf<Undefined<sdk.LogOptions>>().toExtend<sdk.LogOptions>();
    expectTypeOf<Undefined<sdk.ModelTextOptions>>().toExtend<sdk.ModelTextOptions>();
    expectTypeOf<Undefined<sdk.OutputOptions>>().toExtend<sdk.OutputOptions>();
    expectTypeOf<Undefined<sdk.RemoveOptions>>().toExtend<sdk.RemoveOptions>();
    expectTypeOf<Undefined<sdk.RunOptions>>().toExtend<sdk.RunOptions>();
    expectTypeOf<Undefined<sdk.SessionFilter>>().toExtend<sdk.SessionFilter>();
    expectTypeOf<Undefined<sdk.SessionOptions>>().toExtend<sdk.SessionOptions>();
    expectTypeOf<Undefined<sdk.SessionSpec>>().toExtend<sdk.SessionSpec>();
    expectTypeOf<Undefined<sdk.ToolCallOptions>>().toExtend<sdk.ToolCallOptions>();
    expectTypeOf<Undefined<sdk.TransferOptions>>().toExtend<sdk.TransferOptions>();
    expectTypeOf<Undefined<sdk.WriteOptions>>().toExtend<sdk.WriteOptions>();
  });

  test('derive the data of an event, and whether it has a command, from its type', () => {
    type Of<Type> = Extract<sdk.SessionEvent, { type: Type }>;
    expectTypeOf<Of<'command.completed'>['data']>().toEqualTypeOf<sdk.Result>();
    expectTypeOf<Of<'command.output'>['data']>().toEqualTypeOf<sdk.OutputChunk>();
    expectTypeOf<Of<'session.opened'>['data']['epoch']>().toEqualTypeOf<number>();
    expectTypeOf<Of<'command.started'>['commandId']>().toEqualTypeOf<string>();
    expectTypeOf<Of<'session.closed'>['commandId']>().toEqualTypeOf<undefined>();
    expectTypeOf<sdk.Session>().toExtend<AsyncDisposable>();
  });

  // S0-51
  test('include the options of every policy', () => {
    type Policy = sdk.DockerPolicy | sdk.HostPolicy | sdk.BubblewrapPolicy | sdk.CodexPolicy | sdk.KubernetesPolicy;
    expectTypeOf<Policy>().toEqualTypeOf<sdk.ExecutionPolicy>();
    expectTypeOf<Policy['type']>().toEqualTypeOf<sdk.PolicyName>();
  });
});
