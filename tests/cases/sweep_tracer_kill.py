# SPDX-License-Identifier: Apache-2.0
"""The test of tracer_kill.py with five times as many kills, at other instants."""
import tracer_kill

tracer_kill.N_KILLS, tracer_kill.SEED = 500, 12
tracer_kill.main()
