# The configuration of a course of nbgrader with these labs: source/NAME/NAME.ipynb is a copy of book/answers/NAME.ipynb.
c = get_config()  # noqa: F821

# What stands in the place of a worked answer, in code and in text. `report lab release` has the same.
c.ClearSolutions.code_stub = {"rust": "// YOUR CODE HERE\ntodo!(\"your answer\")"}
c.ClearSolutions.text_stub = "YOUR ANSWER HERE"
c.ClearSolutions.begin_solution_delimeter = "### BEGIN SOLUTION"
c.ClearSolutions.end_solution_delimeter = "### END SOLUTION"

# Seconds: a cell of Rust is compiled before it runs.
c.Execute.timeout = 180
c.Execute.startup_timeout = 180
