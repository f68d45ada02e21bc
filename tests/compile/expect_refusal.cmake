# Compiles SOURCE by the command COMPILE, which must fail and say EXPECTED.
execute_process(COMMAND ${COMPILE} ${SOURCE} RESULT_VARIABLE code ERROR_VARIABLE messages)
if(code EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiled, but should not")
endif()
string(FIND "${messages}" "${EXPECTED}" position)
if(position EQUAL -1)
  message(FATAL_ERROR "${SOURCE} failed to compile without saying \"${EXPECTED}\":\n${messages}")
endif()
